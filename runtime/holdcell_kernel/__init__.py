"""The Python kernel of a holdcell session.

`python3 -m holdcell_kernel -f /proc/self/fd/3` starts an ipykernel whose five
listening sockets and connection data were opened by somebody else and arrive as
file descriptors (handover.py). With any other connection file it behaves like a
stock ipykernel, so that the same kernelspec also works under other servers.
"""
