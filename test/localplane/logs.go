package localplane

import (
	"fmt"
	"os"
)

// LogsVariable is the environment variable of a folder for the logs of planes in temporary folders.
// Each plane makes a folder below it. Stop does not remove these logs.
const LogsVariable = "LOCALPLANE_LOGS"

// KeepLogs runs the tests of a package, and returns their exit status. If they fail, the logs of all
// planes that they started in temporary folders stay, because the messages of tests name them, and a
// line on standard error says where they are. If [LogsVariable] is set, they stay in any case.
func KeepLogs(run func() int) (status int) {
	if os.Getenv(LogsVariable) != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "localplane-logs-")
	if err == nil {
		err = os.Setenv(LogsVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder for the logs of control planes:", err)
		return 1
	}
	if status = run(); status != 0 {
		fmt.Fprintln(os.Stderr, "the logs of the control planes are in", dir)
		return status
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "remove the logs of the control planes:", err)
		return 1
	}
	return 0
}
