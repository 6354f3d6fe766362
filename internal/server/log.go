package server

import (
	"errors"
	"io"
	"log"
	"strings"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	logsapi "k8s.io/component-base/logs/api/v1"
	logsjson "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2/textlogger"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// NewLogger returns a logger that writes as Kubernetes components do. Each entry is
// one line of printable characters, whatever its values hold: names of objects,
// paths and user names are chosen by callers, also by those who are not
// authenticated.
func NewLogger(config v1alpha1.Log, to io.Writer) logr.Logger {
	if config.Format == v1alpha1.JSONLog {
		logger, _ := logsjson.NewJSONLogger(logsapi.VerbosityLevel(config.Verbosity), zapcore.Lock(logsjson.AddNopSync(escapedJSON{to})), nil, nil)
		return logger
	}
	text := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(int(config.Verbosity))))
	return logr.New(&escapedText{text.GetSink()})
}

// connectionsVerbosity is from which verbosity on failed handshakes and the
// like are logged: whoever can connect can cause them.
const connectionsVerbosity = 2

// connectionLog is where a http.Server tells of connections that fail, and of
// handlers that panic, which are for operators to see.
func connectionLog(logger logr.Logger) *log.Logger { return log.New(lineLog{logger}, "", 0) }

type lineLog struct{ logger logr.Logger }

// Write implements io.Writer.
func (l lineLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// What callers sent is quoted further on in a line: only its beginning is the
	// server's own.
	if first, stack, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "http: panic serving ") || strings.HasPrefix(first, "http2: panic serving ") {
		l.logger.Error(errors.New(first), "a request was not answered", "stack", stack)
	} else {
		l.logger.V(connectionsVerbosity).Info(text)
	}
	return len(line), nil
}
