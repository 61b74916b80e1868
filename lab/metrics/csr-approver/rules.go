package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

const (
	signer = "kubernetes.io/kubelet-serving"
	user   = "system:node:"
)

// Request is what of a CertificateSigningRequest is looked at.
type Request struct {
	Metadata struct{ Name string }
	Spec     struct {
		SignerName        string
		Username          string
		Request           []byte
		ExpirationSeconds *int
	}
	Status struct {
		Certificate []byte
		Conditions  []struct{ Type string }
	}
}

// undecided says whether this is a kubelet's request that waits for somebody.
func (r Request) undecided() bool {
	return r.Spec.SignerName == signer && len(r.Status.Certificate) == 0 && len(r.Status.Conditions) == 0
}

// Rules say which requests are approved.
type Rules struct {
	Names         *regexp.Regexp
	Prefixes      []netip.Prefix
	MaxExpiration int // seconds
}

// refusal says why a request is denied, in upstream's words; "" for one that is approved.
func (r Rules) refusal(request Request) string {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return "PEM block type must be CERTIFICATE REQUEST"
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err.Error()
	}
	node, isNode := strings.CutPrefix(request.Spec.Username, user)
	expiration := request.Spec.ExpirationSeconds
	switch {
	case !isNode:
		return "CSR Spec.Username is not prefixed with system:node:"
	case len(asked.DNSNames)+len(asked.IPAddresses) == 0:
		return "The x509 Cert Request SAN contains neither an IP address nor a DNS name"
	case asked.Subject.CommonName != request.Spec.Username:
		return "CSR username does not match the parsed x509 certificate request commonname"
	case len(asked.DNSNames) > 1:
		return "The x509 Cert Request contains more DNS names than allowed through the config flag"
	case expiration != nil && *expiration > r.MaxExpiration:
		return "CSR spec.expirationSeconds is longer than the maximum allowed expiration second"
	}
	return r.names(asked, node)
}

func (r Rules) names(asked *x509.CertificateRequest, node string) string {
	for _, name := range asked.DNSNames {
		if !strings.HasPrefix(name, node) {
			return "The SAN DNS Name in the x509 CSR is not prefixed by the node name (hostname)"
		}
		if !r.Names.MatchString(name) {
			return "The SAN DNS name in the x509 CR is not allowed by the Cloud provider regex"
		}
	}
	for _, address := range asked.IPAddresses {
		parsed, _ := netip.AddrFromSlice(address)
		allowed := false
		for _, prefix := range r.Prefixes {
			allowed = allowed || prefix.Contains(parsed.Unmap())
		}
		if !allowed {
			return "One of the SAN IP addresses, " + address.String() +
				", is not partof the allowed IP Prefixes/Subnets, denying the CSR."
		}
	}
	return ""
}

// decided is the request as it goes back, approved where there is no reason against it.
func decided(request json.RawMessage, reason string) (any, error) {
	var object map[string]any
	if err := json.Unmarshal(request, &object); err != nil {
		return nil, err
	}
	condition := map[string]any{
		"type": "Approved", "status": "True", "reason": "kubelet-serving cert validated",
		"message":        "CSR complied with kubelet-csr-approver validation process",
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}
	if reason != "" {
		condition["type"], condition["reason"] = "Denied", "kubelet-serving cert denied"
		condition["message"] = "CSR not complying with kubelet-csr-approver validation process. Reason: " + reason
	}
	object["apiVersion"], object["kind"] = "certificates.k8s.io/v1", "CertificateSigningRequest"
	object["status"] = map[string]any{"conditions": []any{condition}}
	return object, nil
}
