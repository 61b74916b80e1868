"""How hosts reach the API servers: a name, a load balancer, a virtual address."""
