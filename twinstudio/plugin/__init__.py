"""What third parties build on: plugin kinds, hooks, manifests, the catalog."""
