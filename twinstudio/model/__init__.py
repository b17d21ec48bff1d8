"""Plain typed data that every other part shares; numpy and msgspec only."""
