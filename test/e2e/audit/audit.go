// Package audit reads the audit log of kube-apiserver for the requests of nodes and of
// other given users: who sent which request, the answer, and the reason.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// policy records the requests of nodes and of the given users, and nothing else.
const policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:nodes"]
%s- level: None
`

// usersRule is the rule for the users of a list.
const usersRule = `- level: Metadata
  users: [%s]
`

// Log is the audit log of one kube-apiserver.
type Log struct{ path, policy string }

// In creates a log in a folder. It records the requests of nodes and of the given
// users.
func In(dir string, users ...string) (*Log, error) {
	log := &Log{path: filepath.Join(dir, "audit.log"), policy: filepath.Join(dir, "audit-policy.yaml")}
	var rule string
	if len(users) > 0 {
		var quoted []string
		for _, user := range users {
			quoted = append(quoted, fmt.Sprintf("%q", user))
		}
		rule = fmt.Sprintf(usersRule, strings.Join(quoted, ", "))
	}
	if err := os.WriteFile(log.policy, fmt.Appendf(nil, policy, rule), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return log, nil
}

// APIServerArgs are the flags for the log of kube-apiserver.
func (l *Log) APIServerArgs() []string {
	return []string{"--audit-policy-file=" + l.policy, "--audit-log-path=" + l.path}
}

// Path returns the path of the log.
func (l *Log) Path() string { return l.path }

// Size returns the current length of the log, an offset for Events. It is 0 if the log
// does not exist.
func (l *Log) Size() int64 {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Events returns the events after an offset, in order. An incomplete last line is
// ignored.
func (l *Log) Events(after int64) ([]auditv1.Event, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	text = text[min(after, int64(len(text))):]
	var events []auditv1.Event
	for {
		line, rest, complete := bytes.Cut(text, []byte("\n"))
		if !complete {
			return events, nil
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		events, text = append(events, event), rest
	}
}
