package mounttest

import (
	"net/url"
	"path"
	"strings"
)

// reachesAll reports whether a client that follows a redirect could reach all entities. The
// location is then the path of a resource on any host, or becomes that when somebody cleans
// it. A redirect to a sign-in page or to the path of an entity is a refusal.
func reachesAll(location, target string) bool {
	if location == "" {
		return false // nobody follows it
	}
	location = beforeAny(location, "?#")
	switch {
	case location == "":
		location = target
	case location[0] != '/' && !strings.Contains(location, "://"):
		location = target[:strings.LastIndex(target, "/")+1] + location
	}
	location = clean(location)
	return strings.HasSuffix(location, configure) || strings.HasSuffix(location, variant)
}

// clean cleans a path in all the ways that proxies and routers do.
func clean(p string) string {
	for range 2 {
		if decoded, err := url.PathUnescape(p); err == nil {
			p = decoded
		}
	}
	segments := strings.Split(strings.ReplaceAll(beforeAny(p, "?#\x00"), `\`, "/"), "/")
	for i, segment := range segments {
		segments[i] = strings.TrimSpace(beforeAny(segment, ";"))
	}
	return strings.ToLower(path.Clean(strings.Join(segments, "/")))
}

func beforeAny(text, separators string) string {
	if i := strings.IndexAny(text, separators); i >= 0 {
		return text[:i]
	}
	return text
}
