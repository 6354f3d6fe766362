package attack

import "fmt"

// token is a request for a token of a service account. The fields of its spec
// are YAML.
func token(attack, account, audiences, bound string) Request {
	spec := "audiences: [" + audiences + "]"
	if bound != "" {
		spec += ", boundObjectRef: {" + bound + "}"
	}
	return post(attack, inStock("serviceaccounts/%s/token", account),
		fmt.Sprintf("{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {%s}}", spec))
}

func toPod(name string) string {
	return fmt.Sprintf("apiVersion: v1, kind: Pod, name: %s, uid: UID(pods/%s)", name, name)
}

func tokens() Section {
	return Section{
		Title: "Service account tokens",
		About: "A kubelet fetches the tokens that its pods carry: of the pod's service account, bound to the pod, for an " +
			"audience that the pod's volumes name.",
		Requests: []Request{
			token("the token for the bank, which its pod carries", "own", "bank.example.com", toPod("own")),
			token("the token for the API server, which its pod carries", "own", "", toPod("own")),
			token("the token for the vault, which the driver of its pod's volume asks for", "own", "vault.example.com", toPod("own-odd")),
			token("another audience", "own", "mint.example.com", toPod("own")),
			token("the audience of another pod of its own", "own", "vault.example.com", toPod("own")),
			token("the API server, for a pod without such a token", "own", "", toPod("own-odd")),
			token("two audiences, both of its pod", "own", `bank.example.com, ""`, toPod("own")),
			token("the same audience twice", "own", "bank.example.com, bank.example.com", toPod("own")),
			token("two audiences, one of its pod", "own", "bank.example.com, mint.example.com", toPod("own")),
			token("bound to nothing", "own", "bank.example.com", ""),
			token("bound to its node", "own", "bank.example.com", "apiVersion: v1, kind: Node, name: web-1, uid: UID(nodes/web-1)"),
			token("bound to a secret", "own", "bank.example.com",
				"apiVersion: v1, kind: Secret, name: own-secret, uid: UID(secrets/own-secret)"),
			token("bound to its pod without a uid", "own", "bank.example.com", "apiVersion: v1, kind: Pod, name: own"),
			token("bound to its pod with another uid", "own", "bank.example.com",
				"apiVersion: v1, kind: Pod, name: own, uid: UID(pods/foreign)"),
			token("bound to its pod in another API version", "own", "bank.example.com",
				"apiVersion: v2, kind: Pod, name: own, uid: UID(pods/own)"),
			token("bound to a pod that is not there", "own", "bank.example.com",
				"apiVersion: v1, kind: Pod, name: gone, uid: UID(pods/own)"),
			token("bound to another node's pod", "own", "bank.example.com", toPod("foreign")),
			token("bound to a pod that no node has yet", "own", "", toPod("waiting")),
			token("bound to its mirror pod", "own", "", toPod("clock-web-1")),
			token("another node's service account, with its pod", "foreign", "bank.example.com", toPod("foreign")),
			token("another node's service account, with a pod of its own", "foreign", "bank.example.com", toPod("own")),
			token("a service account that no pod has", "unused", "", toPod("own")),
			token("a service account that is not there", "gone", "", toPod("own")),
			post("a service account of another namespace",
				"/api/v1/namespaces/kube-system/serviceaccounts/clusterrole-aggregation-controller/token",
				"{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {boundObjectRef: {"+toPod("own")+"}}}"),
			get("read its own pod's service account", inStock("serviceaccounts/own")),
			get("read another node's service account", inStock("serviceaccounts/foreign")),
			get("list service accounts", inStock("serviceaccounts")),
			patch("give its own service account a secret", inStock("serviceaccounts/own"), `{secrets: [{name: foreign-secret}]}`),
		},
	}
}

// podCertificate is the YAML of a request for a pod's certificate. The default of a field
// is the node's own value.
type podCertificate struct{ node, nodeUID, pod, podUID, account, accountUID, signer string }

func (p podCertificate) String() string {
	or := func(value, fallback string) string {
		if value == "" {
			return fallback
		}
		return value
	}
	return fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: PodCertificateRequest, metadata: {name: made}, spec: "+
		"{signerName: %s, nodeName: %s, nodeUID: %s, "+
		"podName: %s, podUID: %s, serviceAccountName: %s, serviceAccountUID: %s, maxExpirationSeconds: 86400, "+
		"stubPKCS10Request: PKCS10()}}",
		or(p.signer, "stock.example.com/pods"), or(p.node, "web-1"), or(p.nodeUID, "UID(nodes/web-1)"),
		or(p.pod, "own-odd"), or(p.podUID, "UID(pods/own-odd)"), or(p.account, "own"), or(p.accountUID, "UID(serviceaccounts/own)"))
}

const podCertificatePath = "/apis/certificates.k8s.io/v1/namespaces/stock/podcertificaterequests"

func podCertificates() Section {
	ask := func(attack string, p podCertificate) Request { return post(attack, podCertificatePath, p.String()) }
	const all = "/apis/certificates.k8s.io/v1/podcertificaterequests"
	return Section{
		Title: "Pod certificates",
		About: "A kubelet asks for the certificate that a pod of its own mounts. A uid that does not fit may mean that a " +
			"cache lags, so it is an error that a kubelet tries again after, not a refusal.",
		Requests: []Request{
			ask("the certificate that its pod mounts", podCertificate{}),
			ask("of another signer", podCertificate{signer: "stock.example.com/admins"}),
			ask("of the API server's signer", podCertificate{signer: "kubernetes.io/kube-apiserver-client-pod"}),
			ask("for a pod of its own that mounts none", podCertificate{pod: "own", podUID: "UID(pods/own)"}),
			ask("as another node", podCertificate{node: "pay-1", nodeUID: "UID(nodes/pay-1)"}),
			ask("as another node, for its pod",
				podCertificate{
					node: "pay-1", nodeUID: "UID(nodes/pay-1)", pod: "foreign-odd", podUID: "UID(pods/foreign-odd)",
					account: "foreign", accountUID: "UID(serviceaccounts/foreign)",
				}),
			ask("for another node's pod",
				podCertificate{
					pod: "foreign-odd", podUID: "UID(pods/foreign-odd)", account: "foreign",
					accountUID: "UID(serviceaccounts/foreign)",
				}),
			ask("for a pod that no node has yet", podCertificate{pod: "waiting", podUID: "UID(pods/waiting)"}),
			ask("for its mirror pod",
				podCertificate{
					pod: "clock-web-1", podUID: "UID(pods/clock-web-1)", account: "default",
					accountUID: "UID(serviceaccounts/default)",
				}),
			ask("for a pod that is not there", podCertificate{pod: "gone"}),
			ask("with another node's uid", podCertificate{nodeUID: "UID(nodes/pay-1)"}),
			ask("with another pod's uid", podCertificate{podUID: "UID(pods/own)"}),
			ask("with another service account", podCertificate{account: "foreign", accountUID: "UID(serviceaccounts/foreign)"}),
			ask("with another service account's uid", podCertificate{accountUID: "UID(serviceaccounts/foreign)"}),
			get("read its own request", podCertificatePath+"/own-certificate"),
			get("read another node's request", podCertificatePath+"/foreign-certificate"),
			get("list its own requests", with(all, "fieldSelector=spec.nodeName%3Dweb-1")),
			get("list another node's requests", with(all, "fieldSelector=spec.nodeName%3Dpay-1")),
			get("list all requests", all),
			get("watch all requests", with(all, watchFor)),
			patch("issue its own certificate", podCertificatePath+"/own-certificate/status",
				`{status: {conditions: [{type: Issued, status: "True", reason: Signed, message: here, `+
					`lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`),
			patch("change its own request", podCertificatePath+"/own-certificate", `{metadata: {annotations: {example.com/note: here}}}`),
			remove("delete its own request", podCertificatePath+"/own-certificate"),
		},
	}
}

const signingPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

func signingRequests() Section {
	const (
		serving = "kubernetes.io/kubelet-serving"
		client  = "kubernetes.io/kube-apiserver-client-kubelet"
		other   = "kubernetes.io/kube-apiserver-client"
	)
	ask := func(attack, signer, request, usage string) Request {
		return post(attack, signingPath, fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: "+
			"CertificateSigningRequest, metadata: {name: made}, spec: {signerName: %s, request: %s, usages: [digital signature, %s auth]}}",
			signer, request, usage))
	}
	return Section{
		Title: "Certificate signing requests",
		About: "A node renews its own certificates. It may not ask the kubelet signers for another node's. A 201 is a " +
			"request on file, not a certificate: who approves and who signs look at it again.",
		Requests: []Request{
			ask("renew its own client certificate", client, "CSR(system:node:web-1; system:nodes)", "client"),
			ask("renew its own serving certificate", serving, "CSR(system:node:web-1; system:nodes)", "server"),
			ask("another node's client certificate", client, "CSR(system:node:pay-1; system:nodes)", "client"),
			ask("another node's serving certificate", serving, "CSR(system:node:pay-1; system:nodes)", "server"),
			ask("another node's client certificate, with its own name behind", client,
				"CSR(system:node:pay-1, system:node:web-1; system:nodes)", "client"),
			ask("another node's client certificate, with its own name before", client,
				"CSR(system:node:web-1, system:node:pay-1; system:nodes)", "client"),
			ask("another node's client certificate, after its own in the same text", client,
				"CSR(system:node:web-1; system:nodes | system:node:pay-1; system:nodes)", "client"),
			ask("another node's client certificate, before its own in the same text", client,
				"CSR(system:node:pay-1; system:nodes | system:node:web-1; system:nodes)", "client"),
			ask("a name in other letters", client, "CSR(system:node:Web-1; system:nodes)", "client"),
			ask("no name", client, "CSR(; system:nodes)", "client"),
			ask("a client certificate of the masters", client, "CSR(system:node:web-1; system:nodes, system:masters)", "client"),
			ask("a certificate of the masters from the general signer", other, "CSR(admin; system:masters)", "client"),
			ask("another node's certificate from the general signer", other, "CSR(system:node:pay-1; system:nodes)", "client"),
			ask("text that is no request", client, "bm90IGEgcmVxdWVzdA==", "client"),
			get("list all signing requests", signingPath),
			patch("approve a signing request", signingPath+"/waiting/approval",
				`{status: {conditions: [{type: Approved, status: "True", reason: Mine, message: here}]}}`),
			patch("issue a certificate", signingPath+"/waiting/status", `{status: {certificate: bm90IGEgY2VydGlmaWNhdGU=}}`),
			patch("change a signing request", signingPath+"/waiting", `{metadata: {annotations: {example.com/note: here}}}`),
			remove("delete a signing request", signingPath+"/waiting"),
		},
	}
}
