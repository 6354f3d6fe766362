package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// auditEvents returns two events as kube-apiserver writes them.
func auditEvents(t *testing.T) (lines []string) {
	t.Helper()
	for _, id := range []string{"a1", "a2"} {
		line, err := json.Marshal(map[string]any{
			"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id, "stage": "ResponseComplete",
			"requestURI": "/api/v1/namespaces/shop/secrets/db", "verb": "get",
			"user":           map[string]any{"username": "system:node:web-1", "groups": []string{"system:nodes"}},
			"responseStatus": map[string]any{"code": 200},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return lines
}

// The commands that read the logs of a provider give audit the events that its API server wrote.
func TestCommandsThatReadAuditLogs(t *testing.T) {
	events := auditEvents(t)
	record := func(event string) map[string]any {
		return map[string]any{
			"category": "kube-audit", "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
			"properties": map[string]any{"log": event + "\n", "stream": "stdout", "pod": "kube-apiserver-1"},
		}
	}
	for name, test := range map[string]struct {
		containing, program, script string
		files                       map[string]string
	}{
		"EKS": {
			containing: "aws logs filter-log-events", program: "aws", script: "cat output",
			files: map[string]string{"output": text(t, events)},
		},
		"AKS, records in lines": {
			containing: "insights-logs-kube-audit", program: "az", script: "mkdir -p records/h=01 && cp output records/h=01/PT1H.json",
			files: map[string]string{"output": text(t, record(events[0])) + "\n" + text(t, record(events[1])) + "\n"},
		},
		"AKS, records in lists": {
			containing: "insights-logs-kube-audit", program: "az", script: "mkdir -p records && cp output records/PT1H.json",
			files: map[string]string{"output": text(t, map[string]any{"records": []any{record(events[0]), record(events[1])}})},
		},
		"AKS, a workspace": {
			containing: "project log_s", program: "az", script: "cat output",
			files: map[string]string{"output": text(t, []any{map[string]any{"log_s": events[0]}, map[string]any{"log_s": events[1]}})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range test.files {
				write(t, filepath.Join(dir, file), content)
			}
			program(t, dir, test.program, test.script)
			program(t, dir, "node-authorizer", `test "$*" = "audit -" && cat > audited`)
			runIn(t, dir, platformBlock(t, "sh", test.containing))
			if got := decoded(t, read(t, dir, "audited")); !slices.Equal(got, []string{"a1", "a2"}) {
				t.Errorf("events are %v", got)
			}
		})
	}
}

// The commands that describe the access entries of EKS write one file for each.
func TestCommandsThatReadAccessEntries(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "list"), `{"accessEntries": ["arn:aws:iam::111122223333:role/a", "arn:aws:iam::111122223333:role/b"]}`)
	program(t, dir, "aws", `case "$2" in list-access-entries) cat list ;; *) echo "{\"accessEntry\": {\"principalArn\": \"$6\"}}" ;; esac`)
	program(t, dir, "node-authorizer", `test "$*" = "doctor --add entries --probe"`)
	runIn(t, dir, platformBlock(t, "sh", "describe-access-entry"))
	for _, role := range []string{"a", "b"} {
		want := "arn:aws:iam::111122223333:role/" + role
		if got := read(t, dir, "entries/arn_aws_iam__111122223333_role_"+role+".json"); !strings.Contains(got, want) {
			t.Errorf("the entry of %s is %s", want, got)
		}
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// program writes a fake program.
func program(t *testing.T, dir, name, script string) {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bin, name)
	write(t, path, "#!/bin/bash\nset -e\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a program has to be executable
		t.Fatal(err)
	}
}

// runIn runs commands in a folder, with the fake programs in its bin.
func runIn(t *testing.T, dir, commands string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, output)
	}
}

// decoded returns the ids of the events in the lines of a log.
func decoded(t *testing.T, log string) (ids []string) {
	t.Helper()
	var decoder auditlog.Decoder
	for line := range bytes.Lines([]byte(log)) {
		if _, err := decoder.Decode(line, func(e *auditlog.Event) { ids = append(ids, e.AuditID) }); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	return ids
}
