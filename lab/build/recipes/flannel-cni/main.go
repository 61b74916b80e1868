// flannel: the lab's STAND-IN for flannel's CNI plugin, whose module is not published as one.
//
// It does what the original does in its default mode: it turns the node's subnet, which flanneld
// writes to /run/flannel/subnet.env, into a configuration for the real bridge plugin, and runs it.
// It keeps no state: DEL works from the same file.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const subnetFile = "/run/flannel/subnet.env"

// subnet is what flanneld says of this node.
type subnet struct {
	network string       // the whole pod network, as in 10.244.0.0/16
	gateway netip.Prefix // this node's gateway with its mask, as in 10.244.1.1/24
	mtu     int
	masqued bool // flanneld masquerades by itself (--ip-masq)
}

func main() {
	if err := run(os.Stdin); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) { // else the bridge plugin has said why
			report(err)
		}
		os.Exit(1)
	}
}

// report prints an error the way the CNI specification asks for (code 11: try again later).
func report(err error) {
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"cniVersion": "1.0.0", "code": 11, "msg": "flannel (lab stand-in): " + err.Error(),
	})
}

func run(stdin io.Reader) error {
	config, err := io.ReadAll(stdin)
	if err != nil {
		return err
	}
	if os.Getenv("CNI_COMMAND") != "VERSION" {
		if config, err = delegate(config); err != nil {
			return err
		}
	}
	folder := filepath.SplitList(os.Getenv("CNI_PATH"))
	if len(folder) == 0 {
		return errors.New("CNI_PATH is not set")
	}
	command := exec.Command(filepath.Join(folder[0], "bridge"))
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(config), os.Stdout, os.Stderr
	return command.Run()
}

// delegate makes the bridge plugin's configuration from flannel's.
func delegate(config []byte) ([]byte, error) {
	own := map[string]any{}
	if err := json.Unmarshal(config, &own); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(subnetFile)
	if err != nil {
		return nil, err // flanneld is not up yet: the kubelet tries again
	}
	node, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subnetFile, err)
	}
	bridge, _ := own["delegate"].(map[string]any)
	if bridge == nil {
		bridge = map[string]any{}
	}
	for _, key := range []string{"cniVersion", "name", "prevResult", "runtimeConfig"} {
		if value, ok := own[key]; ok {
			bridge[key] = value
		}
	}
	bridge["type"] = "bridge"
	bridge["mtu"] = node.mtu
	bridge["ipMasq"] = !node.masqued
	bridge["ipam"] = map[string]any{
		"type":   "host-local",
		"ranges": [][]map[string]string{{{"subnet": node.gateway.Masked().String()}}},
		"routes": []map[string]string{{"dst": node.network}},
	}
	return json.Marshal(bridge)
}

func parse(text string) (subnet, error) {
	values := map[string]string{}
	for _, line := range strings.Fields(text) {
		if key, value, ok := strings.Cut(line, "="); ok {
			values[key] = value
		}
	}
	mtu, err := strconv.Atoi(values["FLANNEL_MTU"])
	if err != nil {
		return subnet{}, fmt.Errorf("FLANNEL_MTU: %w", err)
	}
	gateway, err := netip.ParsePrefix(values["FLANNEL_SUBNET"])
	if err != nil {
		return subnet{}, fmt.Errorf("FLANNEL_SUBNET: %w", err)
	}
	return subnet{values["FLANNEL_NETWORK"], gateway, mtu, values["FLANNEL_IPMASQ"] == "true"}, nil
}
