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

// NewLogger returns a logger with the formats of Kubernetes components. Each entry is one line of
// printable characters for any values: callers, even unauthenticated ones, control names of objects,
// paths and user names.
func NewLogger(config v1alpha1.Log, to io.Writer) logr.Logger {
	if config.Format == v1alpha1.JSONLog {
		to := zapcore.Lock(logsjson.AddNopSync(escapedJSON{to}))
		logger, _ := logsjson.NewJSONLogger(logsapi.VerbosityLevel(config.Verbosity), to, nil, nil)
		return logger
	}
	text := textlogger.NewLogger(textlogger.NewConfig(
		textlogger.Output(to), textlogger.Verbosity(int(config.Verbosity))))
	return logr.New(&escapedText{text.GetSink()})
}

// connectionsVerbosity is the verbosity at which failed handshakes and similar events are logged:
// everybody who can connect can cause them.
const connectionsVerbosity = 2

// connectionLog returns the error log of a http.Server, which reports failed connections and panics
// of handlers. Panics are always logged.
func connectionLog(logger logr.Logger) *log.Logger { return log.New(lineLog{logger}, "", 0) }

type lineLog struct{ logger logr.Logger }

// Write implements io.Writer.
func (l lineLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// A line may quote data of callers. Only its beginning is from the server itself.
	first, stack, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "http: panic serving ") || strings.HasPrefix(first, "http2: panic serving ") {
		l.logger.Error(errors.New(first), "a request was not answered", "stack", stack)
	} else {
		l.logger.V(connectionsVerbosity).Info(text)
	}
	return len(line), nil
}
