package main
import ("fmt"; "runtime"; "sync"; "time")
func main() {
    runtime.GOMAXPROCS(2)
    var group sync.WaitGroup
    over := time.Now().Add(300 * time.Millisecond)
    for i := 0; i < 8; i++ {
        group.Add(1)
        go func() {
            defer group.Done()
            for x := 1; time.Now().Before(over); { for j := 0; j < 3000000; j++ { x += x * j } }
        }()
    }
    group.Wait()
    fmt.Println("well")
}
