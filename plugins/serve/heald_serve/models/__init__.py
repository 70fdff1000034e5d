"""The life of models: found, loaded, warmed up, served, drained.

`model_config`: The models to serve, from options or a file. `version_folders`: The versions of a model on disk.
`served_model`: A loaded version: its signatures. `load_version`, `warmup`: From a folder to a served model.
`loaded_runtime`: The runtime of all models. `servable`: A version of a model, its state and its leases.
`model_manager`: The wanted versions, and the next action towards them. `manager_thread`: Acts on time.
`model_lists`: A new list of models, for this process or for all workers.
"""
