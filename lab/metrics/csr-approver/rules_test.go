package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

func request(t *testing.T, username, name, address string) Request {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:gpu1", Organization: []string{"system:nodes"}},
		DNSNames:    []string{name},
		IPAddresses: []net.IP{net.ParseIP(address)},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	var made Request
	made.Spec.SignerName = signer
	made.Spec.Username = username
	made.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: content})
	return made
}

func TestRefusal(t *testing.T) {
	rules := Rules{
		Names:         regexp.MustCompile(`^(cp1|gpu1)$`),
		Prefixes:      []netip.Prefix{netip.MustParsePrefix("10.77.0.12/32")},
		MaxExpiration: 3600,
	}
	for _, one := range []struct{ username, name, address, refusal string }{
		{"system:node:gpu1", "gpu1", "10.77.0.12", ""},
		{"system:node:gpu1", "gpu10", "10.77.0.12", "regex"},
		{"system:node:gpu1", "cp1", "10.77.0.12", "not prefixed by the node name"},
		{"system:node:gpu1", "gpu1", "10.77.0.13", "10.77.0.13, is not part"},
		{"system:node:cp1", "cp1", "10.77.0.12", "does not match"},
		{"somebody", "gpu1", "10.77.0.12", "not prefixed with system:node:"},
	} {
		got := rules.refusal(request(t, one.username, one.name, one.address))
		if (one.refusal == "") != (got == "") || !strings.Contains(got, one.refusal) {
			t.Errorf("%+v: %q", one, got)
		}
	}
}

func TestUndecided(t *testing.T) {
	waiting := request(t, "system:node:gpu1", "gpu1", "10.77.0.12")
	if !waiting.undecided() {
		t.Error("a new request waits")
	}
	waiting.Status.Conditions = append(waiting.Status.Conditions, struct{ Type string }{"Denied"})
	if waiting.undecided() {
		t.Error("a denied one does not")
	}
}
