package doctor

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/rbac"
)

func day() time.Time { return time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) }

// asks returns a pending request for a serving certificate, one minute old.
func asks(requester, commonName string, groups ...string) CertificateRequest {
	return CertificateRequest{
		Place: finding.Place{Object: "CertificateSigningRequest csr-" + requester + "-" + commonName},
		Name:  "csr-" + requester + "-" + commonName, Signer: certificatesv1.KubeletServingSignerName,
		Requester: requester, Groups: append(groups, "system:authenticated"),
		CommonName: commonName, Organizations: []string{"system:nodes"}, Created: day().Add(-time.Minute),
	}
}

func (r CertificateRequest) forClient() CertificateRequest {
	r.Signer = certificatesv1.KubeAPIServerClientKubeletSignerName
	return r
}

func (r CertificateRequest) approved() CertificateRequest {
	r.Approved, r.Issued = true, true
	return r
}

func (r CertificateRequest) ago(d time.Duration) CertificateRequest {
	r.Created = day().Add(-d)
	r.Name += d.String()
	return r
}

func (r CertificateRequest) of(organizations ...string) CertificateRequest {
	r.Organizations = organizations
	return r
}

func clusterOf(requests ...CertificateRequest) *Cluster {
	return &Cluster{Live: true, Requests: requests, RBAC: rbac.NewPolicy(), RBACKnown: true}
}

func TestFindingsAboutCertificateRequests(t *testing.T) {
	const one, two = "system:node:worker-1", "system:node:worker-2"
	for _, test := range []struct {
		name     string
		requests []CertificateRequest
		want     []string
	}{
		{
			name:     "a node asks for its own certificates",
			requests: []CertificateRequest{asks(one, one, "system:nodes"), asks(one, one, "system:nodes").forClient()},
		},
		{
			name: "a machine asks with a bootstrap token for its first",
			requests: []CertificateRequest{
				asks("system:bootstrap:abcdef", one, "system:bootstrappers").forClient(),
				asks("system:bootstrap:abcdef", two, "system:bootstrappers").forClient(),
			},
		},
		{
			name:     "mapping 1: a name that is no node's",
			requests: []CertificateRequest{asks("WorkerNodeRole", one, "system:bootstrappers", "system:nodes")},
			want:     []string{"error CSRRequesterMismatch WorkerNodeRole"},
		},
		{
			name:     "many nodes go by one name",
			requests: []CertificateRequest{asks("WorkerNodeRole", one, "system:nodes"), asks("WorkerNodeRole", two, "system:nodes")},
			want:     []string{"error CSRRequesterMismatch WorkerNodeRole", "error KubeletUndifferentiated WorkerNodeRole"},
		},
		{
			name:     "mapping 2: and are administrators",
			requests: []CertificateRequest{asks("WorkerNodeRole", one, "system:masters"), asks("WorkerNodeRole", two, "system:masters")},
			want: []string{
				"error CSRRequesterMismatch WorkerNodeRole", "error KubeletUndifferentiated WorkerNodeRole",
				"error KubeletAdministrator WorkerNodeRole",
			},
		},
		{
			name: "mapping 3: a node's name with the masters group", requests: []CertificateRequest{asks(one, one, "system:masters")},
			want: []string{"error KubeletNotInSystemNodes " + one, "error KubeletAdministrator " + one},
		},
		{
			name: "an administrator makes one request", requests: []CertificateRequest{asks("ops", one, "system:masters").approved()},
			want: []string{"error CSRRequesterMismatch ops", "error CSRApprovedMismatch ops"},
		},
		{
			name:     "a node asks in another's name",
			requests: []CertificateRequest{asks(one, two, "system:nodes"), asks(one, two, "system:nodes").forClient()},
			want:     []string{"error CSRForAnotherNode " + one},
		},
		{
			name: "and gets it", requests: []CertificateRequest{asks(one, two, "system:nodes").approved()},
			want: []string{"error CSRForAnotherNode " + one, "error CSRApprovedMismatch " + one},
		},
		{
			name: "a node's name without the group", requests: []CertificateRequest{asks(one, one).forClient()},
			want: []string{"error KubeletNotInSystemNodes " + one},
		},
		{
			name: "a fixed kubelet is not reported", requests: []CertificateRequest{
				asks("WorkerNodeRole", one, "system:nodes").ago(time.Hour), asks(one, one, "system:nodes").ago(time.Minute),
			},
		},
		{
			name: "a kubelet that was fixed and broken again is reported", requests: []CertificateRequest{
				asks(one, one, "system:nodes").ago(time.Hour), asks("WorkerNodeRole", one, "system:nodes").ago(time.Minute),
			},
			want: []string{"error CSRRequesterMismatch WorkerNodeRole"},
		},
		{
			name:     "a certificate of another organization",
			requests: []CertificateRequest{asks(one, one, "system:nodes").of("system:nodes", "system:masters")},
			want:     []string{"error CertificateSubjectMismatch " + one},
		},
		{
			name: "of none", requests: []CertificateRequest{asks(one, one, "system:nodes").of()},
			want: []string{"error CertificateSubjectMismatch " + one},
		},
		{
			name: "of another form of name, often", requests: []CertificateRequest{
				asks(one, "worker-1", "system:nodes").ago(time.Minute), asks(one, "worker-1", "system:nodes").ago(time.Second),
			},
			want: []string{"error CertificateSubjectMismatch " + one},
		},
		{name: "a request waits for a minute", requests: []CertificateRequest{asks(one, one, "system:nodes").ago(time.Minute)}},
		{
			name: "for a day", requests: []CertificateRequest{
				asks(one, one, "system:nodes").ago(24 * time.Hour), asks(two, two, "system:nodes").ago(23 * time.Hour),
				asks("system:bootstrap:abcdef", "system:node:worker-3", "system:bootstrappers").forClient().ago(22 * time.Hour),
			},
			want: []string{
				"warning CSRPending kubernetes.io/kubelet-serving", "warning CSRPending kubernetes.io/kube-apiserver-client-kubelet",
			},
		},
		{name: "was approved a day ago", requests: []CertificateRequest{asks(one, one, "system:nodes").ago(24 * time.Hour).approved()}},
		{
			name: "cannot be read", requests: []CertificateRequest{{
				Place: finding.Place{Object: "CertificateSigningRequest odd"}, Name: "odd", Signer: certificatesv1.KubeletServingSignerName,
				Requester: one, Unreadable: "no PEM block",
			}},
			want: []string{"warning CSRUnreadable " + one},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := runWith(clusterOf(test.requests...), nodeIdentity, Options{Now: day()})
			wantFindings(t, report.Findings, test.want...)
			if len(report.Missing) > 0 {
				t.Errorf("missing %v", report.Missing)
			}
		})
	}
}

func TestAgeOfRequestsInFilesIsRelativeToTheFiles(t *testing.T) {
	c := clusterOf(asks("system:node:worker-1", "system:node:worker-1", "system:nodes").ago(24 * time.Hour))
	c.Live = false
	if report := Examine(c, Options{Now: day().AddDate(1, 0, 0)}); hasCode(report, CSRPending) {
		t.Error("a request that was young when the file was written is reported as waiting")
	}
	c.Requests = append(c.Requests, asks("system:node:worker-2", "system:node:worker-2", "system:nodes"))
	if report := Examine(c, Options{}); !hasCode(report, CSRPending) {
		t.Error("a request that another one in the file is a day younger than is not reported")
	}
}

func hasCode(r *Report, code finding.Code) bool {
	for _, f := range r.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

func TestWithoutRequestsIdentityIsUndetermined(t *testing.T) {
	c := clusterOf()
	c.Nodes = []Node{{Name: "worker-1"}}
	report := run(c, nodeIdentity)
	if len(report.Missing) != 1 || report.Missing[0].Resource != resourceRequests {
		t.Errorf("missing %v, want the requests", report.Missing)
	}
}

func TestManyNodesAreCounted(t *testing.T) {
	var requests []CertificateRequest
	for _, name := range strings.Split("abcdefgh", "") {
		requests = append(requests, asks("WorkerNodeRole", "system:node:"+name, "system:nodes"))
	}
	report := run(clusterOf(requests...), nodeIdentity)
	for _, f := range report.Findings {
		if f.Code == KubeletUndifferentiated && !strings.HasSuffix(f.Message, "system:node:a, system:node:b, system:node:c and 5 more") {
			t.Errorf("%s", f.Message)
		}
	}
	wantFindings(t, report.Findings, "error CSRRequesterMismatch WorkerNodeRole", "error KubeletUndifferentiated WorkerNodeRole")
}

func TestAdministratorByBinding(t *testing.T) {
	c := readText(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubelets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{kind: Group, name: workers}]
`)
	c.Requests = []CertificateRequest{asks("system:node:worker-1", "system:node:worker-1", "system:nodes", "workers")}
	wantFindings(t, run(c, nodeIdentity).Findings, "error KubeletAdministrator system:node:worker-1")
	c.Requests[0].Groups = []string{"system:nodes"}
	wantFindings(t, run(c, nodeIdentity).Findings)
}

func TestBindingToAllNodesIsNotAFindingAboutIdentity(t *testing.T) {
	c := clusterOf(asks("system:node:worker-1", "system:node:worker-1", "system:nodes"))
	bind(c, "all", allow("*", "*", "*"))
	wantFindings(t, run(c, nodeIdentity).Findings)
	wantFindings(t, run(c, leftovers).Findings, "error NodesMasters group system:nodes")
}
