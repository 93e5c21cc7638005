//go:build !linux && !darwin && !windows

package alone

// Wait does nothing here.
func Wait(string) (done func()) { return func() {} }

// Try does nothing here, and always returns ok.
func Try(string) (done func(), ok bool) { return func() {}, true }
