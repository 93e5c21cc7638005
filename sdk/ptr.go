package sdk

// Ptr returns a pointer to a copy of v. Guests use it instead of new(v), because TinyGo 0.41 silently makes new(v) a
// pointer to zero.
func Ptr[T any](v T) *T { return &v }
