// Package token makes AWS IAM bearer tokens: signed GetCallerIdentity requests to STS
// that the receiver of the token sends.
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
//	X-Amz-Expires         60, which STS ignores and old servers require
//	X-Amz-Security-Token  of temporary credentials only
//	X-Amz-Signature       64 hexadecimal digits
//	X-Amz-SignedHeaders   host;x-k8s-aws-id
//
// The header x-k8s-aws-id has the id of the cluster. It is signed but not in the token:
// the server adds its own cluster id to the request. The host is the host of STS in the
// signed region, by the settings of the AWS SDK (such as FIPS and dual stack), or
// sts.amazonaws.com with us-east-1 if there is no region. The clients of EKS use the same
// parameters.
package token
