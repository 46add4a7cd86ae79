"""Customers, and checks of the promises to them by SQL, VPP and REST, without the product's code."""
