package v1alpha1

import (
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook: {address: ""}
bootstrap:
  address: ":10443"
  certificateFile: tls.crt
  keyFile: tls.key
  attestor: exec
  exec: {`
	const program = "provider: hetzner, command: [/usr/local/bin/attest]"
	for exec, want := range map[string]string{
		program: "",
		program + `, environment: [A=b, "C=", D], timeout: 15s, maxConcurrent: 256`: "",
		"command: [/a]":                              "exec.provider: want a name",
		"provider: Hetzner, command: [/a]":           "exec.provider: want a name",
		"provider: a.b, command: [/a]":               "exec.provider: want a name",
		"provider: aws, command: [/a]":               `"aws" is the name of another provider`,
		"provider: tpm, command: [/a]":               `"tpm" is the name of another provider`,
		"provider: hetzner":                          "exec.command: want the absolute path",
		"provider: hetzner, command: [attest]":       "exec.command: want the absolute path",
		"provider: hetzner, command: [./attest, /a]": "exec.command: want the absolute path",
		program + ", environment: [A=1, A=1]":        "is given twice",
		program + ", environment: [=1]":              "exec.environment[0]: want NAME=VALUE",
		program + ", environment: [1A=1]":            "exec.environment[0]: want NAME=VALUE",
		program + ", timeout: 0s":                    "exec.timeout: want a duration from 1s to 1m0s",
		program + ", timeout: 16s":                   "want up to bootstrap.requestTimeout, 15s, got 16s",
		program + ", maxConcurrent: 0":               "exec.maxConcurrent",
		program + ", maxConcurrent: 257":             "exec.maxConcurrent",
		program + ", shell: true":                    "shell",
	} {
		_, err := Parse([]byte(config + exec + "}"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", exec, err, want)
		}
	}
}
