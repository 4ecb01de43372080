"""The real RocketMQ beside refmq: processes, recordings and tests that need a JDK and Maven."""
