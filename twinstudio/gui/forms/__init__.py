"""Forms made from the parameters of a plugin."""
