------------------------------ MODULE Turnstile ------------------------------
\* A toy for the tests of the runner: a turnstile that lets one person in for each coin.
EXTENDS Naturals, Sequences

CONSTANTS Coins,  \* bound of the model
          Strict  \* FALSE: the turnstile lets people in without a coin

VARIABLES paid, inside, log
vars == <<paid, inside, log>>

Init == paid = 0 /\ inside = 0 /\ log = <<>>

\* A person throws a coin.                                              insert_coin
InsertCoin(n) ==
    /\ paid + n <= Coins
    /\ paid' = paid + n
    /\ log' = Append(log, "coin")
    /\ UNCHANGED inside

\* A person passes.                                                     walk_in
WalkIn ==
    /\ inside < paid \/ ~Strict
    /\ inside < Coins
    /\ inside' = inside + 1
    /\ log' = Append(log, "in")
    /\ UNCHANGED paid

Move == WalkIn
Next == (\E n \in {1} : InsertCoin(n)) \/ Move
Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Next)

NobodyForFree == inside <= paid
EverybodyIn   == <>(inside = Coins)
==============================================================================
