package attackpaths_test

import "testing"

// The API server answers a patch and a deletion with the object, also when they are dry runs.
func TestAnswersThatRead(t *testing.T) {
	const certs = "@certificates.k8s.io"
	approvedByItself := []string{"create certificatesigningrequests" + certs, "create certificatesigningrequests/nodeclient" + certs}
	base := namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db") +
		secret("shop", "r", "Opaque", "") + secret("shop", "s", "Opaque", "")
	const secretR, secretS = "Certain Secret shop/r: SecretRead", "Certain Secret shop/s: SecretRead"
	testReach(t, base, []reachCase{
		{
			rule: "to patch secrets", add: role("p", "shop", "shop/web", "patch secrets@"),
			want: []string{secretR, secretS}, because: "may patch secrets in namespace shop",
		},
		{
			rule: "to delete a secret", add: role("p", "shop", "shop/web", "delete secrets@ s"),
			want: []string{secretS}, because: "may delete secrets s in namespace shop",
		},
		{
			rule: "to delete all secrets at once", add: role("p", "shop", "shop/web", "deletecollection secrets@"),
			want: []string{secretR, secretS}, because: "may deletecollection secrets in namespace shop",
		},
		{rule: "to delete all at once has no name", add: role("p", "shop", "shop/web", "deletecollection secrets@ s")},
		{
			rule: "a rule with the empty name deletes all at once", add: role("p", "shop", "shop/web", "deletecollection secrets@ ''"),
			want: []string{secretR, secretS},
		},
		{rule: "an update of a secret carries what it writes", add: role("p", "shop", "shop/web", "create,update secrets@")},
		{
			rule: "a webhook for deletions guards what they read, and not what a patch reads",
			add:  webhook("secrets", "DELETE") + role("p", "shop", "shop/web", "delete secrets@", "patch secrets@ r"),
			want: []string{secretR, "Possible Secret shop/s: SecretRead"},
		},
		{
			rule: "to create a secret for an account, and to patch it",
			add:  role("p", "shop", "shop/web", "create secrets@", "patch secrets@ new"),
			want: []string{"Certain ServiceAccount shop/db: ServiceAccountTokenSecret"},
		},
		{
			rule: "an approval answers with the certificate",
			add: node("n1") + role("p", "", "shop/web", "create certificatesigningrequests"+certs,
				"patch certificatesigningrequests/approval"+certs, "approve signers"+certs+" kubernetes.io/kube-apiserver-client-kubelet"),
			want: []string{"Certain User system:node:n1: ApproveCertificate"},
		},
		{
			rule: "to patch the status of requests that are approved by themselves",
			add:  node("n1") + role("p", "", "shop/web", append(approvedByItself, "patch certificatesigningrequests/status"+certs)...),
			want: []string{"Certain User system:node:n1: ApproveCertificate"},
		},
		{
			rule: "an update of the status needs the certificate",
			add:  node("n1") + role("p", "", "shop/web", append(approvedByItself, "update certificatesigningrequests/status"+certs)...),
		},
		{
			rule: "to update requests that are approved by themselves",
			add:  node("n1") + role("p", "", "shop/web", append(approvedByItself, "update certificatesigningrequests"+certs)...),
			want: []string{"Certain User system:node:n1: ApproveCertificate"},
		},
	})
}
