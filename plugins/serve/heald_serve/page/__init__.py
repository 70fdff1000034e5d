"""The page at /: models, forms to try them, charts of the traffic, and the machine.

`page_api`: The route of the page's files and of its two documents. `page_files`: The files, as they are in the package.
`documents`: The state of the server, and the signatures of a version. `class_labels`: Names of classes among a model's
assets.

The files in `files/` are written by hand: no build step makes them, and nothing of another host is fetched. The page
asks the server as any client does, so its requests are those of the REST interface. It shows texts of models and of
users; these become text nodes, never markup, and the policy in `page_files` has the browser refuse anything else.

The files need no token, since a browser sends none when it opens a page. Every document needs it; the page asks its
reader for the token and keeps it in memory.
"""
