// Package fakeaws is a fake of AWS for tests. It has the parts that a machine joins a
// cluster through: the instance metadata service of each machine, EC2, STS and IAM.
// They are HTTP servers in this process that speak the protocols of the real ones, so
// that the AWS SDK needs nothing but its endpoint settings to talk to them.
//
// A [Cloud] holds instances, which a test launches, stops, changes and
// terminates. Each has its own [Metadata] service, which demands session tokens
// (IMDSv2), signs the instance's identity document in the three forms that AWS
// has, with keys that the cloud made for itself ([Signer]), and hands out
// credentials of the instance's role. [Cloud.EC2], [Cloud.STS] and [Cloud.IAM] check
// the signature of every request (AWS Signature Version 4) against these credentials
// and show of the cloud what an account sees in a region. Each service can be told
// to fail ([Fault]).
//
// A [Front] has these services under AWS's own host names over TLS, behind a proxy, so
// that a program is pointed there by its environment alone. STS knows instances' roles,
// and whomever else a test makes credentials for ([Principal]): users, root, federated
// users, sessions of roles under any name, and principals that AWS would not have.
//
// The signed forms have the structure of the genuine ones, element by element:
// PKCS #7 with content, without certificates, in BER of indefinite length, its
// base64 in lines of 76 characters.
package fakeaws
