public class Main {
    public static void main(String[] words) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("stopped")));
        System.out.println("started");
        Thread.sleep(1000000);
    }
}
