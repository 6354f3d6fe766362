package server

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

func TestInsecureSettingsOfAuthenticationAreReported(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.ServerConfiguration)
		want   []string // in the only line that is logged; empty: none
	}{
		{"the defaults", func(*v1alpha1.ServerConfiguration) {}, nil},
		{"sessions are not checked for roles", func(c *v1alpha1.ServerConfiguration) {
			c.IAM.SessionCheck = v1alpha1.InstanceCheck
		}, []string{
			"roles of instances are not compared", "only one whose instance has that role",
		}},
		{"sessions are not checked", func(c *v1alpha1.ServerConfiguration) { c.IAM.SessionCheck = v1alpha1.NoSessionCheck }, []string{
			"even one that does not exist", "only one whose instance has that role",
		}},
		{"sessions of some roles are not checked", func(c *v1alpha1.ServerConfiguration) {
			c.IAM.SessionCheckExemptRoles = []string{"arn:aws:iam::111122223333:role/fargate"}
		}, []string{"whoever may assume one of them", "role/fargate"}},
		{"anybody may ask", func(c *v1alpha1.ServerConfiguration) {
			c.Webhook.ClientAuthentication = v1alpha1.NoClientAuthentication
		}, []string{
			"callers are not authenticated",
		}},
		{"no names are reserved", func(c *v1alpha1.ServerConfiguration) {
			c.IAM.Reserved.Prefixes = nil
		}, []string{"any username and group"}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			config := v1alpha1.Defaults()
			tc.change(config)
			var logged []string
			logger := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			r := &authentication{config: config, logger: logger}
			r.warnOfInsecureSettings()
			if len(logged) != min(len(tc.want), 1) {
				t.Fatalf("logged %q", logged)
			}
			for _, want := range tc.want {
				if !strings.Contains(logged[0], want) {
					t.Errorf("logged %q, want %q", logged, want)
				}
			}
		})
	}
}
