"""Whether the product kept its promises, by SQL, VPP and the REST API: none of its code is imported here."""
