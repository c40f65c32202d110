// Java's clients and servers, each with what came of it; or, given a URL, what is there.
import com.sun.net.httpserver.HttpServer;
import java.net.ConnectException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

public class Talks {
    static final byte[] BIG = new byte[3_000_000];

    public static void main(String[] words) throws Exception {
        if (words.length > 0) {
            try {
                System.out.print(get(words[0], BodyHandlers.ofString()));
            } catch (ConnectException refused) {
                System.err.println("refused");
                System.exit(1);
            }
            return;
        }
        System.out.println("requests " + requests());
        System.out.println("sockets " + sockets());
        System.out.println("selected " + selected());
        System.out.println("datagrams " + datagrams());
        System.out.println("unix " + unix());
        System.exit(0);
    }

    static <T> T get(String url, java.net.http.HttpResponse.BodyHandler<T> how) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        return client.send(HttpRequest.newBuilder(URI.create(url)).build(), how).body();
    }

    static boolean requests() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, BIG.length);
            exchange.getResponseBody().write(BIG);
            exchange.close();
        });
        server.start();
        String url = "http://localhost:" + server.getAddress().getPort();
        boolean right = Arrays.equals(get(url, BodyHandlers.ofByteArray()), BIG);
        server.stop(0);
        return right;
    }

    static String sockets() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
             Socket client = new Socket()) {
            client.connect(server.getLocalSocketAddress(), 30_000);
            try (Socket other = server.accept()) {
                other.getOutputStream().write("told".getBytes());
            }
            return new String(client.getInputStream().readAllBytes());
        }
    }

    static boolean selected() throws Exception {
        try (ServerSocketChannel server = ServerSocketChannel.open();
             SocketChannel client = SocketChannel.open();
             Selector selector = Selector.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            client.configureBlocking(false);
            if (!client.connect(server.getLocalAddress())) {
                client.register(selector, SelectionKey.OP_CONNECT);
                selector.select(30_000);
                return client.finishConnect();
            }
            return true;
        }
    }

    static String datagrams() throws Exception {
        try (DatagramSocket server = new DatagramSocket(0, InetAddress.getLoopbackAddress());
             DatagramSocket client = new DatagramSocket()) {
            byte[] text = "datagram".getBytes();
            client.send(new DatagramPacket(text, text.length, server.getLocalSocketAddress()));
            DatagramPacket got = new DatagramPacket(new byte[100], 100);
            server.receive(got);
            return new String(got.getData(), 0, got.getLength());
        }
    }

    static String unix() throws Exception {
        Path folder = Files.createTempDirectory(Path.of(System.getenv("TMPDIR")), "java");
        UnixDomainSocketAddress at = UnixDomainSocketAddress.of(folder.resolve("local"));
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(at);
            try (SocketChannel client = SocketChannel.open(at); SocketChannel other = server.accept()) {
                other.write(ByteBuffer.wrap("by a file".getBytes()));
                ByteBuffer room = ByteBuffer.allocate(100);
                int size = client.read(room);
                return new String(room.array(), 0, size);
            }
        } finally {
            Files.delete(at.getPath());
            Files.delete(folder);
        }
    }
}
