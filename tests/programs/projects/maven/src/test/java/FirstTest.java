import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

public class FirstTest {
    @Test
    public void aChildIsKilled() throws Exception {
        Process child = new ProcessBuilder("sleep", "60").start();
        child.destroy();
        assertEquals(143, child.waitFor());
        child = new ProcessBuilder("sleep", "60").start();
        child.destroyForcibly();
        assertEquals(137, child.waitFor());
    }

    @Test
    public void descendantsEnd() throws Exception {
        Process child = new ProcessBuilder("sh", "-c", "sleep 60 & echo; wait").start();
        child.getInputStream().read();
        child.descendants().forEach(ProcessHandle::destroy);
        assertTrue(child.waitFor(20, TimeUnit.SECONDS));
    }

    @Test(expected = IOException.class)
    public void whatIsNotThere() throws Exception {
        new ProcessBuilder("no-such-program").start();
    }

    @Test
    public void fails() {
        fail("as it must");
    }
}
