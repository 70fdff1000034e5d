"""Discovery: finds plugins, loads them one at a time in order of id, and keeps a record of each.

Scanning for plugins imports none of their code. Loading imports a plugin's light module only; device types, kernels and
passes are imported when they are first used. A plugin is registered as a whole or not at all. A fault of a plugin
becomes its record, never an error of the others; `[plugins] strict` makes it fatal. The order of hooks decides nothing.

`discovery`: Plugins: loading, the ids, conflicts, and the records as `heald plugins` shows them.
`entry_points`: The distributions on sys.path that announce plugins, and their requirement on core.
`plugin_module`: From a light module to its Contribution: import, version of the contract, settings, hooks.
`hook_observers`: Wrappers of plugins around the hooks of others.
`plugin_record`: PluginRecord: status, reason and remedy of one plugin.
`config_names`: Names in config that no plugin has.
"""
