"""Customers, and checks of the promises to customers. The checks use SQL, VPP and REST, but none of the
product's code.
"""
