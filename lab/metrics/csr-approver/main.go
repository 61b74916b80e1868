// csr-approver is the lab's STAND-IN for kubelet-csr-approver, whose module no proxy has: the checks,
// messages and settings of version 1.2.14 that gpuboot uses, by Go's own library alone.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const period = time.Second

func main() {
	probes := flag.String("health-probe-bind-address", ":8081", "where /healthz is")
	flag.String("metrics-bind-address", ":8080", "taken and not used")
	flag.Parse()
	rules, err := environment()
	if err != nil {
		log.Fatal(err)
	}
	client, err := inCluster()
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	go func() { log.Fatal(http.ListenAndServe(*probes, nil)) }()
	log.Print("STAND-IN of kubelet-csr-approver, made for gpuboot's lab")
	for ; ; time.Sleep(period) {
		if err := pass(client, rules); err != nil {
			log.Print(err)
		}
	}
}

// environment reads upstream's variables.
func environment() (Rules, error) {
	rules := Rules{MaxExpiration: 367 * 24 * 3600}
	if os.Getenv("PROVIDER_REGEX") == "" {
		return rules, errors.New("PROVIDER_REGEX is not set: which nodes may have certificates?")
	}
	names, err := regexp.Compile(os.Getenv("PROVIDER_REGEX"))
	if err != nil {
		return rules, err
	}
	rules.Names = names
	for text := range strings.SplitSeq(os.Getenv("PROVIDER_IP_PREFIXES"), ",") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return rules, err
		}
		rules.Prefixes = append(rules.Prefixes, prefix)
	}
	if bypassed, _ := strconv.ParseBool(os.Getenv("BYPASS_DNS_RESOLUTION")); !bypassed {
		return rules, errors.New("the stand-in resolves no names: set BYPASS_DNS_RESOLUTION=true")
	}
	if text := os.Getenv("MAX_EXPIRATION_SEC"); text != "" {
		if rules.MaxExpiration, err = strconv.Atoi(text); err != nil {
			return rules, err
		}
	}
	return rules, nil
}

// pass approves or denies every request that nobody has decided.
func pass(client *Client, rules Rules) error {
	var list struct{ Items []json.RawMessage }
	if err := client.do(http.MethodGet, requests, nil, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		var request Request
		if err := json.Unmarshal(item, &request); err != nil {
			return err
		}
		if !request.undecided() {
			continue
		}
		reason := rules.refusal(request)
		changed, err := decided(item, reason)
		if err != nil {
			return err
		}
		path := requests + "/" + request.Metadata.Name + "/approval"
		if err := client.do(http.MethodPut, path, changed, nil); err != nil {
			return err
		}
		log.Printf("%s of %s: approved=%t %s",
			request.Metadata.Name, request.Spec.Username, reason == "", reason)
	}
	return nil
}
