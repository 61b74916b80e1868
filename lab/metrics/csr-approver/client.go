package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	account  = "/var/run/secrets/kubernetes.io/serviceaccount/"
)

// Client speaks to the API server as the pod's service account.
type Client struct {
	http   *http.Client
	server string
}

func inCluster() (*Client, error) {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New(account + "ca.crt holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	server := net.JoinHostPort(
		os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return &Client{
		http:   &http.Client{Transport: transport, Timeout: 10 * time.Second},
		server: "https://" + server,
	}, nil
}

// do asks the API server; body and answer may be nil.
func (c *Client) do(method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.server+path, content)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(account + "token") // the kubelet renews it
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
