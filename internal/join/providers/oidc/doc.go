// Package oidc is the provider for machines with an identity token: a JSON Web Token (RFC 7519)
// in which an issuer, often the cloud of the machine, says which machine it is (OpenID Connect
// Core 1.0, section 2).
//
// A token is a bearer token: whoever has read it can show it. If the issuer lets the machine
// choose the audience, the audience contains the cluster, a challenge of the server and the hash
// of the public key for which the machine asks for its certificate; then a copied token is of no
// use for another cluster, at another time or with another key. Otherwise the token is accepted
// once, and only while it is new.
//
// The [Collector] is the machine's half, the [Attestor] the server's.
package oidc
