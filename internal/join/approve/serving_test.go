package approve_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestServingNames(t *testing.T) {
	node := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "kubernetes.default"},
		{Type: corev1.NodeInternalDNS, Address: "api.kube-system.svc"},
		{Type: corev1.NodeExternalDNS, Address: "*.example.org"},
		{Type: corev1.NodeExternalDNS, Address: "localhost"},
		{Type: corev1.NodeInternalDNS, Address: "10-0-0-9.web.pod.Cluster.Local"},
		{Type: corev1.NodeInternalDNS, Address: "web.example.cluster.local."},
		{Type: corev1.NodeInternalDNS, Address: "worker-1.internal"},
		{Type: corev1.NodeHostName, Address: "10.0.0.10"},
		{Type: corev1.NodeExternalIP, Address: "192.0.2.7"},
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
		{Type: corev1.NodeInternalIP, Address: "169.254.169.254"},
		{Type: "Other", Address: "192.0.2.8"},
	}
	const ledger, both = approve.ServingLedger, approve.ServingLedgerAndNode
	for _, tc := range []struct {
		sans []string
		from approve.ServingAddresses
		want verdict.Code
	}{
		{[]string{"worker-1"}, ledger, ""},
		{[]string{"10.0.0.7"}, ledger, ""},
		{[]string{"worker-1", "10.0.0.7", "fd00::7"}, ledger, ""},
		{[]string{"worker-1", "worker-1"}, ledger, ""},
		{[]string{"Worker-1"}, ledger, approve.AddressNotAttested},
		{[]string{"worker-1."}, ledger, approve.AddressNotAttested},
		{[]string{"worker-2"}, ledger, approve.AddressNotAttested},
		{[]string{"worker-1", "kubernetes.default"}, ledger, approve.AddressNotAttested},
		{[]string{"kubernetes.default.svc.cluster.local"}, ledger, approve.AddressNotAttested},
		{[]string{"10.0.0.7", "10.0.0.8"}, ledger, approve.AddressNotAttested},
		{[]string{"*"}, ledger, approve.AddressNotAttested},
		{[]string{"*.example.com"}, ledger, approve.AddressNotAttested}, // although the entry has it
		{[]string{"worker-1.internal"}, ledger, approve.AddressNotAttested},
		{[]string{"worker-1.internal", "192.0.2.7", "10.0.0.10", "10.0.0.7"}, both, ""},
		{[]string{"kubernetes.default"}, both, approve.AddressNotAttested},
		{[]string{"api.kube-system.svc"}, both, approve.AddressNotAttested},
		{[]string{"10-0-0-9.web.pod.Cluster.Local"}, both, approve.AddressNotAttested},
		{[]string{"web.example.cluster.local."}, both, approve.AddressNotAttested},
		{[]string{"*.example.org"}, both, approve.AddressNotAttested},
		{[]string{"localhost"}, both, approve.AddressNotAttested},
		{[]string{"127.0.0.1"}, both, approve.AddressNotAttested},
		{[]string{"169.254.169.254"}, both, approve.AddressNotAttested},
		{[]string{"192.0.2.8"}, both, approve.AddressNotAttested},
	} {
		t.Run(strings.Join(tc.sans, ",")+" from "+string(tc.from), func(t *testing.T) {
			q := servingQuestion(t)
			q.ServingAddresses, q.NodeAddresses = tc.from, node
			q.Request.Spec.Request = encoded(t, theKey(t), servingTemplate(tc.sans...))
			wants(t, approve.Decide(q), tc.want)
		})
	}
}

func TestAnIPv4MappedAddressIsDenied(t *testing.T) {
	q := servingQuestion(t)
	mapped := netip.MustParseAddr("::ffff:10.0.0.7").As16()
	value, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: mapped[:]}})
	if err != nil {
		t.Fatal(err)
	}
	made := template("system:node:worker-1")
	made.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	q.Request.Spec.Request = encoded(t, theKey(t), made)
	wants(t, approve.Decide(q), approve.AddressNotAttested)
}

func TestSelfNodeServer(t *testing.T) {
	q := servingQuestion(t)
	q.SelfNodeServer = false
	wants(t, approve.Decide(q), approve.SelfNodeServerNotAllowed)
}
