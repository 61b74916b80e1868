package exporter

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// An option of dcgm-exporter 4.8.4: its names, its environment variable and its default.
type option struct {
	names    []string
	env      string
	fallback string
	boolean  bool
}

// Every option of the real exporter. Those that mean nothing here are accepted and ignored; the
// ones in notSimulated are refused when they are set, for ignoring them would be wrong.
var options = []option{
	{[]string{"collectors", "f"}, "DCGM_EXPORTER_COLLECTORS", "/etc/dcgm-exporter/default-counters.csv", false},
	{[]string{"config-file"}, "DCGM_EXPORTER_CONFIG_FILE", "", false},
	{[]string{"address", "a"}, "DCGM_EXPORTER_LISTEN", ":9400", false},
	{[]string{"web-read-timeout"}, "DCGM_EXPORTER_WEB_READ_TIMEOUT", "10s", false},
	{[]string{"web-write-timeout"}, "DCGM_EXPORTER_WEB_WRITE_TIMEOUT", "30s", false},
	{[]string{"collect-interval", "c"}, "DCGM_EXPORTER_INTERVAL", "30000", false},
	{[]string{"kubernetes", "k"}, "DCGM_EXPORTER_KUBERNETES", "false", true},
	{[]string{"use-old-namespace", "o"}, "DCGM_EXPORTER_USE_OLD_NAMESPACE", "false", true},
	{[]string{"cpu-devices", "p"}, "DCGM_EXPORTER_CPU_DEVICES_STR", "f", false},
	{[]string{"configmap-data", "m"}, "DCGM_EXPORTER_CONFIGMAP_DATA", "none", false},
	{[]string{"remote-hostengine-info", "r"}, "DCGM_REMOTE_HOSTENGINE_INFO", "localhost:5555", false},
	{[]string{"kubernetes-enable-pod-labels"}, "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "false", true},
	{[]string{"kubernetes-enable-pod-uid"}, "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "false", true},
	{[]string{"kubernetes-gpu-id-type"}, "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", "uid", false},
	{[]string{"kubernetes-pod-label-allowlist-regex"}, "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", "", false},
	{[]string{"devices", "d"}, "DCGM_EXPORTER_DEVICES_STR", "f", false},
	{[]string{"no-hostname", "n"}, "DCGM_EXPORTER_NO_HOSTNAME", "false", true},
	{[]string{"switch-devices", "s"}, "DCGM_EXPORTER_OTHER_DEVICES_STR", "f", false},
	{[]string{"fake-gpus"}, "DCGM_EXPORTER_USE_FAKE_GPUS", "false", true},
	{[]string{"web-config-file"}, "DCGM_EXPORTER_WEB_CONFIG_FILE", "", false},
	{[]string{"xid-count-window-size", "x"}, "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "300000", false},
	{[]string{"replace-blanks-in-model-name", "rbmn"}, "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", "false", true},
	{[]string{"debug"}, "DCGM_EXPORTER_DEBUG", "false", true},
	{[]string{"clock-events-count-window-size"}, "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE", "300000", false},
	{[]string{"enable-dcgm-log"}, "DCGM_EXPORTER_ENABLE_DCGM_LOG", "false", true},
	{[]string{"dcgm-log-level"}, "DCGM_EXPORTER_DCGM_LOG_LEVEL", "NONE", false},
	{[]string{"log-format"}, "DCGM_EXPORTER_LOG_FORMAT", "text", false},
	{[]string{"pod-resources-kubelet-socket"}, "DCGM_POD_RESOURCES_KUBELET_SOCKET", "/var/lib/kubelet/pod-resources/kubelet.sock", false},
	{[]string{"hpc-job-mapping-dir"}, "DCGM_HPC_JOB_MAPPING_DIR", "", false},
	{[]string{"container-labels"}, "DCGM_EXPORTER_CONTAINER_LABELS", "", false},
	{[]string{"container-runtime-socket"}, "DCGM_CONTAINER_RUNTIME_SOCKET", "", false},
	{[]string{"nvidia-resource-names"}, "NVIDIA_RESOURCE_NAMES", "", false},
	{[]string{"kubernetes-virtual-gpus"}, "KUBERNETES_VIRTUAL_GPUS", "false", true},
	{[]string{"dump-enabled"}, "DCGM_EXPORTER_DUMP_ENABLED", "false", true},
	{[]string{"dump-directory"}, "DCGM_EXPORTER_DUMP_DIRECTORY", "/tmp/dcgm-exporter-debug", false},
	{[]string{"dump-retention"}, "DCGM_EXPORTER_DUMP_RETENTION", "24", false},
	{[]string{"dump-compression"}, "DCGM_EXPORTER_DUMP_COMPRESSION", "true", true},
	{[]string{"kubernetes-enable-dra"}, "KUBERNETES_ENABLE_DRA", "false", true},
	{[]string{"disable-startup-validate"}, "DISABLE_STARTUP_VALIDATE", "false", true},
	{[]string{"enable-gpu-bind-unbind-watch"}, "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH", "false", true},
	{[]string{"gpu-bind-unbind-poll-interval"}, "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL", "1s", false},
	{[]string{"enable-pprof"}, "DCGM_EXPORTER_ENABLE_PPROF", "false", true},
	{[]string{"web-systemd-socket"}, "DCGM_EXPORTER_SYSTEMD_SOCKET", "false", true},
}

var notSimulated = map[string]string{
	"config-file":           "its YAML configuration is not read",
	"hpc-job-mapping-dir":   "jobs of a batch system are not mapped",
	"kubernetes-enable-dra": "no dynamic resource claims are read",
	"container-labels":      "no container runtime is asked",
	"web-systemd-socket":    "it opens its own socket",
}

// Values are the options in force, by their long names.
type Values map[string]string

type optionValue struct {
	values  Values
	name    string
	boolean bool
}

func (v optionValue) String() string   { return v.values[v.name] }
func (v optionValue) IsBoolFlag() bool { return v.boolean }
func (v optionValue) Set(text string) error {
	if v.boolean {
		if _, err := strconv.ParseBool(text); err != nil {
			return err
		}
	}
	v.values[v.name] = text
	return nil
}

// ParseOptions reads the command line, then the environment for what it does not set. An unknown
// option is an error, and so is one that the real exporter has and this stand-in cannot honour.
func ParseOptions(arguments []string, getenv func(string) string) (Values, error) {
	values := Values{}
	flags := flag.NewFlagSet("dcgm-exporter (simulated)", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, option := range options {
		value := optionValue{values, option.names[0], option.boolean}
		values[option.names[0]] = option.fallback
		if text := getenv(option.env); text != "" {
			if err := value.Set(text); err != nil {
				return nil, fmt.Errorf("could not parse %q as value for %s", text, option.env)
			}
		}
		for _, name := range option.names {
			flags.Var(value, name, option.env)
		}
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	for name, why := range notSimulated {
		if value := values[name]; value != "" && value != "false" {
			return nil, fmt.Errorf("the simulated exporter has no %s: %s", name, why)
		}
	}
	return values, values.checkRemote()
}

// RemoteEngine is the address of a host engine that was asked for, by option or environment; "" for
// none. The option's default means the engine inside the exporter, also where it is not given.
func RemoteEngine(arguments []string, getenv func(string) string) string {
	for i, word := range arguments {
		name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || name != "r" && name != "remote-hostengine-info" {
			continue
		}
		if joined {
			return value
		}
		if i+1 < len(arguments) {
			return arguments[i+1]
		}
	}
	return getenv("DCGM_REMOTE_HOSTENGINE_INFO")
}

// Of engines it knows the node's own alone, at the address that is the option's default.
func (v Values) checkRemote() error {
	remote := "remote-hostengine-info"
	if v[remote] != "localhost:5555" {
		return fmt.Errorf("the simulated exporter has no %s but localhost:5555, the node's own", remote)
	}
	return nil
}

// Milliseconds reads an option that counts milliseconds.
func (v Values) Milliseconds(name string) (time.Duration, error) {
	number, err := strconv.Atoi(v[name])
	if err != nil || number <= 0 {
		return 0, fmt.Errorf("%s is not a positive number: %q", name, v[name])
	}
	return time.Duration(number) * time.Millisecond, nil
}

// On reads a boolean option.
func (v Values) On(name string) bool {
	on, _ := strconv.ParseBool(v[name])
	return on
}

// Selected reads the option "devices": "f" or "g" for all (nil), "g:0,2-3" for some.
func (v Values) Selected() (map[int]bool, error) {
	kind, list, some := strings.Cut(v["devices"], ":")
	if kind != "f" && kind != "g" && kind != "i" || some && kind == "f" {
		return nil, fmt.Errorf("invalid devices: %q", v["devices"])
	}
	if !some {
		return nil, nil
	}
	selected := map[int]bool{}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, other := strconv.Atoi(last)
		if errors.Join(err, other) != nil {
			return nil, fmt.Errorf("invalid devices: %q", v["devices"])
		}
		for index := from; index <= to; index++ {
			selected[index] = true
		}
	}
	return selected, nil
}

// Hostname is the label's value: the node's name in Kubernetes, else the host's; "" for none.
func (v Values) Hostname() string {
	if v.On("no-hostname") {
		return ""
	}
	if node := os.Getenv("NODE_NAME"); node != "" {
		return node
	}
	name, _ := os.Hostname()
	return name
}
