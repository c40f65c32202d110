// By Go's own resolver, or by the C library: as GODEBUG says.
package main

import (
	"fmt"
	"net"
	"sort"
)

func main() {
	for _, name := range []string{"named.test", "large.test", "nobody.test"} {
		found, err := net.LookupHost(name)
		sort.Strings(found)
		fmt.Println(name, found, err)
	}
}
