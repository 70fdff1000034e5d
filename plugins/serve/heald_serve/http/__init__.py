"""Requests and answers over HTTP.

`ports`: Listening sockets, and ports that processes share. `listener`: uvicorn's server.
`protocol`: Its protocol, with limits of time, sizes and connections.
`guards`: The names of the server, and its token.
`direct`: Requests that are answered without a task, and load that is shed.
`body`: Bodies within the memory budget.
`messages`: A request and an answer. `application`: The ASGI application: guards, routes, statuses of errors, the log.
"""
