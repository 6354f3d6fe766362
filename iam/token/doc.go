// Package token makes AWS IAM bearer tokens: requests to STS, GetCallerIdentity, that
// are signed for somebody else to send.
//
// A token has the prefix of [iam.TokenPrefix] and, in unpadded base64url, the URL
// https://HOST/?QUERY of a GET request with these parameters, in the order of their
// names:
//
//	Action                GetCallerIdentity
//	Version               2011-06-15
//	X-Amz-Algorithm       AWS4-HMAC-SHA256
//	X-Amz-Credential      ACCESS-KEY-ID/YYYYMMDD/REGION/sts/aws4_request
//	X-Amz-Date            YYYYMMDDThhmmssZ, the time of signing
//	X-Amz-Expires         60, which STS leaves aside and old servers want
//	X-Amz-Security-Token  of temporary credentials only
//	X-Amz-Signature       64 hexadecimal digits
//	X-Amz-SignedHeaders   host;x-k8s-aws-id
//
// The header x-k8s-aws-id has the id of the cluster. It is signed and not in the token:
// who sends the request adds the id of its own cluster. The host is STS's in the region
// that is signed for, as the settings of the AWS SDK have it (FIPS and dual stack
// among them), or sts.amazonaws.com with us-east-1 where there is no region. These are
// the parameters that the clients of EKS make too.
package token
