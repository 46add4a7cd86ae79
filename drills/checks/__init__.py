"""Customers, and whether promises to them were kept, by SQL, VPP and REST: without the product's code."""
