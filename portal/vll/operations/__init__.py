"""All writes to VLLs and orders. Every write is in a transaction, and no function uses the network."""
