module github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol

go 1.26.0
