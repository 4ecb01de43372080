from __future__ import annotations

import asyncio

import pytest

from refmq.sim.network import GIVE_UP_S, Delay
from refmq.sim.world import Node, World
from tests.sim.echo import PORT, ask, run


def test_connections_overtake_each_other_for_some_seed() -> None:
    async def story(world: World, server: Node, client: Node) -> list[int]:
        order: list[int] = []

        async def one(number: int) -> None:
            await ask("server", b"x")
            order.append(number)

        async def all_of_them() -> None:
            await asyncio.gather(*(one(number) for number in range(4)))

        await client.call(all_of_them)
        return order

    assert len({tuple(run(story, seed)) for seed in range(10)}) > 5


def test_a_cut_is_silent_and_healing_it_delivers_what_waited() -> None:
    async def story(world: World, server: Node, client: Node) -> tuple[bool, bytes, float]:
        async def talk() -> bytes:
            reader, writer = await asyncio.open_connection("server", PORT)
            writer.write(b"one")
            await reader.readexactly(3)
            world.network.cut("client", "server")
            writer.write(b"two")
            answer = await reader.readexactly(3)
            writer.close()
            return answer

        talking = asyncio.ensure_future(client.call(talk))
        await asyncio.sleep(60)
        waited = not talking.done()
        world.network.heal("client", "server")
        before_s = world.loop.elapsed_s
        return waited, await talking, world.loop.elapsed_s - before_s

    waited, answer, after_s = run(story)
    assert waited
    assert answer == b"two"
    assert after_s < 1


def test_a_cut_in_one_direction_lets_the_request_through_and_keeps_the_answer() -> None:
    async def story(world: World, server: Node, client: Node) -> list[str]:
        async def talk() -> None:
            reader, writer = await asyncio.open_connection("server", PORT)
            world.network.cut("server", "client", both=False)
            writer.write(b"one")
            await reader.readexactly(3)

        talking = asyncio.ensure_future(client.call(talk))
        await asyncio.sleep(30)
        assert not talking.done()
        talking.cancel()
        return [entry.what for entry in world.timeline.of("server")]

    assert "arrive" in run(story)


def test_a_writer_gives_up_when_the_cut_lasts() -> None:
    async def story(world: World, server: Node, client: Node) -> float:
        async def talk() -> float:
            reader, writer = await asyncio.open_connection("server", PORT)
            world.network.cut("client", "server")
            writer.write(b"one")
            started_s = world.loop.elapsed_s
            with pytest.raises(TimeoutError):
                await reader.readexactly(3)
            return world.loop.elapsed_s - started_s

        return await client.call(talk)

    assert run(story) == pytest.approx(GIVE_UP_S)


def test_connecting_through_a_cut_hangs_until_it_is_healed_or_given_up() -> None:
    async def story(world: World, server: Node, client: Node) -> tuple[bytes, float]:
        world.network.cut("client", "server")
        started_s = world.loop.elapsed_s
        with pytest.raises(TimeoutError, match="timed out"):
            await client.call(lambda: ask("server", b"x"))
        lasted_s = world.loop.elapsed_s - started_s
        asking = asyncio.ensure_future(client.call(lambda: ask("server", b"x")))
        await asyncio.sleep(5)
        assert not asking.done()
        world.network.heal()
        return await asking, lasted_s

    answer, lasted_s = run(story)
    assert answer == b"x"
    assert lasted_s == pytest.approx(127, abs=1)


def test_a_lost_answer_breaks_the_connection_after_the_request_was_served() -> None:
    async def story(world: World, server: Node, client: Node) -> bytes:
        world.network.lose_next("server", "client")
        with pytest.raises(ConnectionResetError):
            await client.call(lambda: ask("server", b"lost"))
        assert any(entry.what == "lose" for entry in world.timeline.entries)
        return await client.call(lambda: ask("server", b"found"))

    assert run(story) == b"found"


def test_a_half_open_connection_is_found_out_by_writing() -> None:
    async def story(world: World, server: Node, client: Node) -> str:
        async def talk() -> str:
            reader, writer = await asyncio.open_connection("server", PORT)
            writer.write(b"one")
            await reader.readexactly(3)
            world.network.half_open("server", "client")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 3600)  # nothing is heard for an hour
            writer.write(b"two")
            try:
                await reader.readexactly(3)
            except ConnectionResetError:
                return "reset"
            return "answered"

        return await client.call(talk)

    assert run(story) == "reset"


def test_after_a_power_loss_peers_hear_nothing_until_the_node_is_back() -> None:
    async def story(world: World, server: Node, client: Node) -> list[str]:
        seen: list[str] = []

        async def talk() -> None:
            reader, writer = await asyncio.open_connection("server", PORT)
            writer.write(b"one")
            await reader.readexactly(3)
            server.crash(power=True)
            writer.write(b"two")
            try:
                await asyncio.wait_for(reader.readexactly(3), 100)
            except TimeoutError:
                seen.append("silence")
            server.start()
            try:
                await reader.readexactly(3)
            except ConnectionResetError:
                seen.append("reset")

        await client.call(talk)
        return seen

    assert run(story) == ["silence", "reset"]


def test_what_was_sent_before_a_crash_arrives_for_some_seeds_and_is_lost_for_others() -> None:
    async def answer_and_die(node: Node) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"done")
            node.crash()

        async with await asyncio.start_server(serve, port=PORT) as server:
            await server.serve_forever()

    async def story(world: World, server: Node, client: Node) -> bytes | None:
        try:
            return await client.call(lambda: ask("server", b"x"))
        except ConnectionResetError:
            return None

    outcomes = {run(story, seed, answer_and_die) for seed in range(20)}
    assert outcomes == {b"done", None}


def test_an_address_in_use_and_a_port_without_a_listener_are_refused() -> None:
    async def story(world: World, server: Node, client: Node) -> None:
        async def listen_again() -> None:
            await asyncio.start_server(lambda r, w: None, port=PORT)

        with pytest.raises(OSError, match="Address already in use"):
            await server.call(listen_again)
        with pytest.raises(ConnectionRefusedError):
            await client.call(lambda: asyncio.open_connection("server", PORT + 1))
        with pytest.raises(OSError, match="not known"):
            await client.call(lambda: asyncio.open_connection("nowhere", PORT))

    run(story)


def test_a_request_given_up_while_connecting_leaves_no_connection() -> None:
    async def story(world: World, server: Node, client: Node) -> int:
        world.network.set_delay(Delay(1.0, 1.0), "client", "server")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call(lambda: ask("server", b"x")), 1.5)
        await asyncio.sleep(60)
        return len(world.network.links)

    # The call goes on inside of the client, as a task of its own would; it ends by itself and cleans up.
    assert run(story) == 0


def test_every_connection_is_forgotten_after_a_close() -> None:
    async def story(world: World, server: Node, client: Node) -> int:
        for _ in range(20):
            await client.call(lambda: ask("server", b"x"))
        await asyncio.sleep(10)
        return len(world.network.links)

    assert run(story) == 0
