// Package fakeaws is a fake of AWS for tests. It has the services that a machine needs to
// join a cluster: the instance metadata service of each machine, EC2, STS and IAM. They
// are HTTP servers in this process with the real protocols, so that the AWS SDK needs
// only endpoint settings to use them.
//
// A [Cloud] has instances, which a test launches, stops, changes and terminates. Each has
// its own [Metadata] service, which requires session tokens (IMDSv2), signs the
// instance's identity document in the three forms of AWS with the keys of the cloud
// ([Signer]), and issues credentials of the instance's role. [Cloud.EC2], [Cloud.STS] and
// [Cloud.IAM] verify the signature of every request (AWS Signature Version 4) against
// these credentials, and return what the account can see in the region. A test can make
// each service fail ([Fault]).
//
// A [Front] serves them under AWS's own host names over TLS, behind a proxy, so that a
// program needs only environment variables to use them. STS knows the roles of instances,
// and other [Principal]s for which a test makes credentials: users, root, federated
// users, sessions of roles with any name, and principals that AWS does not have.
//
// The signed forms have the structure of the genuine ones, element by element: PKCS #7
// with content, without certificates, in BER of indefinite length, with base64 in lines
// of 76 characters.
package fakeaws
