// Package apiserver connects a server to the API server of its cluster, so that
// neither a silent network nor an old credential keeps it from news for long.
//
//   - A connection that is silent for [limits.pingAfter] is pinged (HTTP/2), and
//     closed when no answer comes within [limits.pingTimeout].
//   - A request has to be answered within [limits.answer], a watch has to begin
//     within [limits.watchBegins], and a watch with bookmarks, which come about
//     once a minute, ends after [limits.watchSilence] without a byte. This is what
//     finds silence where there is no ping: HTTP/1.1, and proxies that answer
//     pings themselves.
//   - The kubeconfig and all files that it names, or those of the pod's service
//     account, are looked at every two seconds. What has changed, and then stayed
//     as it is, is used by the next request; unless only the token has changed,
//     watches begin anew.
//
// client-go has the same for some of this, but its times are environment variables
// of the process, it looks at certificates every five minutes and at tokens once a
// minute, and it never reads a kubeconfig again.
package apiserver
