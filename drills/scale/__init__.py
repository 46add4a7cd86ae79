"""A large network on one machine: how the whole portal holds, what each thing costs, what gives first."""
