package portal

// Route is what a path serves.
type Route struct {
	// Query has the fields that an address can have.
	Query []string
	// Form has the fields of a form. HasForm tells a form without fields from none.
	Form    []string
	HasForm bool
	// IsPublic means that nobody has to be signed in.
	IsPublic bool
}

// Routes returns all paths.
func Routes() map[string]Route {
	all := make(map[string]Route)
	for path, r := range routes() {
		all[path] = Route{r.query, r.form.fields, r.post != nil, r.isPublic}
	}
	return all
}

// Credentials are the fields of the sign-in itself.
func Credentials() []string { return credentials }

// TextsOfPages returns the texts of each page.
func TextsOfPages() []map[string]string { return textsOfPages }
