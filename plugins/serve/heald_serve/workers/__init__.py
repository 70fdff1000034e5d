"""Several processes that serve one port.

    parent    binds the ports without listening, starts the workers, restarts one that dies, and ends them all
    worker    a whole server: models, threads, HTTP, gRPC; it listens on the ports with SO_REUSEPORT when it is ready

A worker knows the parent by one channel. Its end is the end of the parent, so a worker never outlives a killed parent.
The parent passes questions of one worker to all: a new list of models reaches every worker, in one order. It keeps the
last list for workers that start later. Counts are in memory that all processes share: they outlive a killed worker, and
every worker shows the sum.

SO_REUSEPORT, and no inherited listening socket: of 32 connections that come at once, the busiest of two workers gets
59 % by the system's choice, and 93 % by a race for them. A worker that is killed is left out at once.

A worker that hangs is as bad as a dead one: the system goes on to give it connections. So its event loops have a pulse,
and the parent kills a worker without one.

`restart_policy`: The wait before a restart, and the end of all attempts.
`channel`: Messages, and questions with answers. `shared_cells`: Counts in shared memory.
`pulse`: The counts that show that a worker's loops turn.
`supervisor`: The parent. `worker_process`: A worker as the parent sees it. `worker`: The program of a worker.
"""
