package iam_test

import (
	"errors"
	"testing"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// quarantines is a fake: names of Quarantines by node, or an error.
type quarantines struct {
	nodes map[string]string
	err   error
	asked []string
}

func (q *quarantines) Quarantined(node string) (string, bool, error) {
	q.asked = append(q.asked, node)
	name, found := q.nodes[node]
	return name, found && q.err == nil, q.err
}

func TestRolesOfQuarantinedNodesGetNoUser(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		node    string
		change  func(*iam.Mapping)
		refused bool
	}{
		{"the node", nodeName, nil, true},
		{"the node, in none of the groups of nodes", nodeName, func(m *iam.Mapping) { m.Groups = nil }, true},
		{"another node", "ip-10-0-0-2.eu-west-1.compute.internal", nil, false},
		{"a user that is not a node's", nodeName, func(m *iam.Mapping) { m.Username = "ec2:{{EC2PrivateDNSName}}" }, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := nodes()
			s.options.Quarantines = &quarantines{nodes: map[string]string{tc.node: "incident-7"}}
			if tc.change != nil {
				tc.change(&s.mapping)
			}
			if tc.refused {
				s.expectRefusal(t, policyv1alpha1.NodeQuarantined)
				return
			}
			if _, err := s.authenticate(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// A token gets neither a user nor a refusal while the Quarantines are unknown. Users that
// are not nodes do not depend on it.
func TestUnknownQuarantinesAreAnError(t *testing.T) {
	unread := errors.New("quarantines have not been read yet")
	s := nodes()
	s.options.Quarantines = &quarantines{err: unread}
	user, err := s.authenticate(t)
	var refusal *iam.Refusal
	if user != nil || !errors.Is(err, unread) || errors.As(err, &refusal) {
		t.Errorf("got %+v, %v", user, err)
	}

	s = nodes()
	asked := &quarantines{err: unread}
	s.options.Quarantines, s.mapping.Username = asked, "ann"
	if _, err := s.authenticate(t); err != nil || len(asked.asked) > 0 {
		t.Errorf("a person: %v, asked about %q", err, asked.asked)
	}
}
