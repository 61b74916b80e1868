package exporter

// What the real exporter's err_msg says of the XIDs that matter to operating GPUs; of others this
// stand-in says "Unknown Error".
var xidMessages = map[int]string{
	0: "No Error", 8: "GPU stopped processing", 13: "Graphics Engine Exception",
	31: "GPU memory page fault", 32: "Invalid or corrupted push buffer stream",
	38: "Driver firmware error", 43: "GPU stopped processing",
	45: "Preemptive cleanup, due to previous errors -- Most likely to see when running multiple cuda",
	46: "GPU stopped processing", 48: "Double Bit ECC Error",
	54: "Auxiliary power is not connected to the GPU board",
	61: "Internal micro-controller breakpoint/warning", 62: "Internal micro-controller halt",
	63: "ECC page retirement or row remapping recording event",
	64: "ECC page retirement or row remapper recording failure",
	68: "NVDEC0 Exception", 69: "Graphics Engine class error", 74: "NVLINK Error",
	78: "vGPU Start Error", 79: "GPU has fallen off the bus",
	92: "High single-bit ECC error rate",
	93: "Non-fatal violation of provisioned InfoROM wear limit",
	94: "Contained ECC error", 95: "Uncontained ECC error", 109: "Context Switch Timeout Error",
	110: "Security Fault Error", 119: "GSP RPC Timeout", 120: "GSP Error",
	121: "C2C Link Error", 136: "ALI Training Fail", 137: "NVLink Privilege Error",
	140: "Unrecovered ECC Error", 143: "GPU Initialization Failure", 144: "NVLINK: Saw Error",
	145: "NVLINK: RLW Error", 146: "NVLINK: TLW Error", 147: "NVLINK: TREX Error",
	148: "NVLINK: NVLPW_CTRL Error", 149: "NVLINK: NETIR Error", 150: "NVLINK: MSE Error",
	154: "GPU Recovery Action Changed", 155: "NVLINK: SW Defined Error",
	156: "Resource Retirement Event", 157: "Resource Retirement Failure",
	158: "GPU Fatal Timeout", 167: "PCIE Fatal Timeout",
}

func xidMessage(xid int) string {
	if message, known := xidMessages[xid]; known {
		return message
	}
	return "Unknown Error"
}
