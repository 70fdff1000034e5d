"""The release: metadata that all manifests share, and the wheels of all distributions."""
