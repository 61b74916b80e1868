module gpuboot/lab/csr-approver

go 1.26.7
